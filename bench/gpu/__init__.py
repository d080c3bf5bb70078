"""`heed bench gpu`: how a real model learns and answers on a GPU, beside what its hardware could do at best."""
