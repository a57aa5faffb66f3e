"""List the words of OpenPBS's files that are known by name, so that what is not modelled can be told from slips."""

from __future__ import annotations

MODELLED = (
    *("preemptive_sched", "preempt_attempts", "preempt_queue_prio", "preempt_prio", "preempt_order"),
    *("preempt_sort", "by_queue", "round_robin", "strict_ordering", "help_starving_jobs", "max_starve"),
)
WITH_PRIME = (
    *("preemptive_sched", "by_queue", "round_robin", "strict_ordering", "help_starving_jobs"),
    *("fair_share", "job_sort_key", "node_sort_key", "load_balancing", "sort_queues", "backfill"),
)
"""Options that may differ between prime and non-prime time; on others a prime word is ignored."""
OPTIONS = (
    *("backfill", "backfill_prime", "cpus_per_ssinode", "dedicated_prefix", "fair_share"),
    *("fairshare_decay_factor", "fairshare_decay_time", "fairshare_enforce_no_shares"),
    *("fairshare_entity", "fairshare_usage_res", "half_life", "job_sort_formula_threshold"),
    *("job_sort_key", "key", "load_balancing", "load_balancing_rr", "log_filter", "max_job_check"),
    *("mem_per_ssinode", "mom_resources", "node_sort_key", "nonprimetime_prefix", "peer_queue"),
    *("prime_exempt_anytime_queues", "prime_spill", "primetime_prefix", "provision_policy"),
    *("resource_unset_infinite", "resources", "server_dyn_res", "smp_cluster_dist", "sort_by"),
    *("sort_queues", "strict_fifo", "sync_time", "unknown_shares", "update_comments"),
)
"""Further options of sched_config."""
RELICS = (
    *("preempt_suspend", "preempt_checkpoint", "preempt_requeue", "preempt_starving"),
    *("preempt_fairshare", "dont_preempt_starving"),
)
"""Options from before preempt_order (section 1.1)."""
QUIET = (
    *(
        "scheduling",
        "acl_roots",
        "managers",
        "operators",
        "log_events",
        "mail_from",
        "mailer",
        "query_other_jobs",
    ),
    *("resv_enable", "node_fail_requeue", "default_chunk.ncpus", "pbs_license_linger_time"),
    *(
        "pbs_license_max",
        "pbs_license_min",
        "license_count",
        "eligible_time_enable",
        "sched_host",
        "sched_port",
    ),
    *(
        "sched_log",
        "sched_priv",
        "sched_user",
        "partition",
        "comment",
        "state",
        "Mom",
        "ntype",
        "resv_enable",
    ),
    *("max_concurrent_provision", "max_array_size", "flatuid", "acl_host_enable", "sharing"),
)
"""Attributes that say nothing about which jobs make way for which; not worth a word."""
NODE_WORDS = ("arch", "host", "vnode", "hpmem", "vmem")
"""Resources of a vnode that are no amounts, or are not counted here."""
