"""`heed eval agent`: does the agent do its tasks, and does it do them as a person wants after one correction?"""
