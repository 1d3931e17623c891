"""API priority and fairness: who floods the server waits, and nobody else does.

FlowSchemas         which requests are alike           matching.py
priority levels     how many of them run at once       levels.py, borrowing.py
queues              in which order the others wait     queueset.py
turns               who comes first on our one thread  turns.py
seats               what a request is taken to cost    estimating.py
"""
