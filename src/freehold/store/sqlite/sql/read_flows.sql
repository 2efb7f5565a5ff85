select {flow_columns} from flow f where f.id = :id
