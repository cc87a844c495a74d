"""What a schedule is and what becomes of its due instants: documents, versions, policies, plans, ledger values. All pure.

`document` reads JSON strictly, `canonical` gives it one form and a digest, `configuration` turns it into a value.
`policy` says what happens at an overlap and after an outage, `plan` decides a step from facts, `ledger` holds the answers.
"""
