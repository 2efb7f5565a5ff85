{comparing};

{moving}
