update key_limit set declared = :declared where key = :key
