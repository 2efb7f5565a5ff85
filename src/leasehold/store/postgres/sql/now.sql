select {schema}.clock()
