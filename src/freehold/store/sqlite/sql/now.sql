select clock()
