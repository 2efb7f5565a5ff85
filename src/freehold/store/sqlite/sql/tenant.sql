select {tenant_columns} from tenant where name = :tenant
