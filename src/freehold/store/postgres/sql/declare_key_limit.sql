update {schema}.key_limit set declared = :declared::text where key = :key::text
