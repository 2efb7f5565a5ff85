select {tenant_columns} from tenant order by name
