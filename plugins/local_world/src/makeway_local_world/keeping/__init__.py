"""The processes that hold jobs: a nursery, and a keeper for each incarnation of a job (local-world 1).

They outlive the daemon and upgrades of makeway, so these modules import the standard library and one another only.
"""
