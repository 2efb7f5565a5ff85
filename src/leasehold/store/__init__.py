"""Where jobs live. `contract` has the promises, `verbs` keeps them, a dialect each speaks SQL."""
