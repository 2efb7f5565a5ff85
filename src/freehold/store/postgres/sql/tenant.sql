select {tenant_columns} from {schema}.tenant where name = :tenant::text
