"""Where jobs live: `contract` has the promises, the verbs keep them, two dialects speak SQL."""
