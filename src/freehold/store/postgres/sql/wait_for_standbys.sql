{standbys}
