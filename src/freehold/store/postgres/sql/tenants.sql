select {tenant_columns} from {schema}.tenant order by name
