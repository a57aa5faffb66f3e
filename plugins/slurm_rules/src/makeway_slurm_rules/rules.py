"""Decide by release of Slurm which of two behaviours is in force.

Each rule has a name, a sentence, the release from which it holds, and a place in docs/rules. The setting
``[scheduler] slurm_release`` sets them all; ``[scheduler.rules]`` sets single ones.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping

import attrs

from makeway.errors import nearest

OLDEST_RELEASE = "22.05"
"""The oldest release that recordings exist of."""
NEWEST_RELEASE = "26.11"
"""The newest release that recordings exist of; the default of ``slurm_release``."""


@attrs.frozen
class Rule:
    """One behaviour that a release of Slurm changed, or a defect that can be switched on."""

    text: str
    since: str | None
    """First release in which it holds; None: in none by itself, only when switched on."""
    until: str | None = None
    """First release in which it no longer holds; None: it still does."""
    section: str = ""
    default: bool | None = None
    """Overrides the releases unless a release is stated; None: the newest release decides."""
    defect: bool = False
    """Whether it is a fault of Slurm; never on in a real world."""


RULES: Mapping[str, Rule] = {
    "requeue_keeps_priority": Rule(
        "a requeued job keeps its priority, hence its place in the queue",
        None,
        until="24.05.5",
        section="slurm-preemption 4.5 no. 5; 9",
    ),
    "grace_exit_is_preemption": Rule(
        "a job that ends by itself during its grace time counts as preempted",
        "24.05",
        section="slurm-preemption 4.3",
    ),
    "grace_mark_survives_requeue": Rule(
        "a requeued job whose grace time ran out is requeued once more when it ends (a defect)",
        None,
        section="slurm-preemption 4.3 quirk",
        defect=True,
    ),
    "builtin_raw_order": Rule(
        "sched/builtin with priority/basic and one tier walks the jobs in order of submission, unsorted",
        None,
        until="24.05.5",
        section="slurm-gang-and-select 5.2",
    ),
    "raw_order_goes_on_with_partitions": Rule(
        "while sched/builtin walks the jobs unsorted, a job that has to wait is tried in the partitions that one "
        "before it, which has started, had left, and stays in the last of them (a defect)",
        None,
        until="24.05.5",
        section="slurm-gang-and-select 5.2",
        defect=True,
    ),
    "record_node_sets": Rule(
        "select/linear goes through the NodeName lines one by one for jobs that neither share nor preempt, "
        "even if lines are alike",
        None,
        until="23.02",
        section="slurm-gang-and-select 4.1.4",
    ),
    "node_sets_of_one_build": Rule(
        "select/linear goes through nodes of one build after the other for jobs that share or may preempt, too; "
        "before, it looked for the best among all of one weight",
        "26.05",
        section="slurm-gang-and-select 4.1.4",
    ),
    "one_node_first_fit": Rule(
        "a job limited to one node takes the first node that fits",
        "26.05",
        section="slurm-gang-and-select 4.3.6",
    ),
    "implicit_max_nodes": Rule(
        "a task count without a node count limits the nodes to that count",
        "26.05",
        section="slurm-gang-and-select 4.1.1",
    ),
    "gpus_thin_cores": Rule(
        "beside GPUs a node is thinned to the cores that all tasks of the job need, in whatever way they are asked for",
        "26.05",
        section="slurm-gang-and-select 4.3.8",
    ),
    "gpus_in_all_thin_cores": Rule(
        "beside GPUs asked for by --gpus a node is thinned to the cores that all tasks of the job need (measured on "
        "24.11.5; 23.02 to 24.05: open)",
        "24.11",
        section="slurm-gang-and-select 4.3.8",
    ),
    "trim_cores_by_index": Rule(
        "jobs with tasks per node get consecutive cores",
        "23.02.5",
        section="slurm-gang-and-select 4.3.8",
    ),
    "cpus_in_whole_tasks": Rule(
        "CPUs of a node that are too few for another task of --cpus-per-task count for nothing; before, tasks may get "
        "fewer CPUs than they asked for",
        "23.02",
        section="slurm-gang-and-select 4.3.6, 4.3.8",
    ),
    "memory_per_cpu_counts_whole_tasks": Rule(
        "where memory is handed out per CPU, CPUs of a node that are too few for another task count for nothing, in "
        "every release",
        "1",
        section="slurm-gang-and-select 4.3.6",
    ),
    "node_limits_ignore_victims": Rule(
        "a limit on the nodes of several jobs (GrpTRES=node) that is reached keeps a job out even if it has the nodes "
        "already that victims would leave, so that no job makes way; later releases look at these nodes",
        None,
        until="24.11.4",
        section="slurm-priority-and-limits 6.2",
    ),
    "impossible_despite_time": Rule(
        "a job that no node could run is refused although it is beyond the time limit of its only partition, too; "
        "before, it waited for PartitionTimeLimit (measured on 24.11.5; 23.02 to 24.05: open)",
        "24.11",
        section="slurm-priority-and-limits 7",
    ),
    "max_jobs_per_account_late": Rule(
        "MaxJobsPA alone of the limits that are looked at before nodes lets the main scheduler look first whether "
        "nodes are left to a job, and holds up those behind it with assoc_limit_stop (measured on 22.05.8; 23.02 to "
        "24.05: open)",
        None,
        until="24.11",
        section="slurm-priority-and-limits 11.1",
    ),
    "too_few_nodes_refuse": Rule(
        "a job that wants more nodes or CPUs than its only partition has is refused (measured on 24.11.5; 23.02 to "
        "24.05 and 25.05 to 25.11: open)",
        "24.11",
        until="26.05",
        section="slurm-priority-and-limits 7",
    ),
    "too_few_nodes_of_several_refuse": Rule(
        "a job that wants more nodes or CPUs than any of its several partitions has is refused; later it waits "
        "(measured on 24.11.5 and 26.05.5; 25.05 and 25.11: open)",
        None,
        until="26.05",
        section="slurm-priority-and-limits 7",
    ),
    "down_before_impossible": Rule(
        "a job of a partition that is down waits for it, though no node could run the job (measured on 24.11.5; 23.02 "
        "to 24.05: open)",
        "24.11",
        section="slurm-priority-and-limits 7",
    ),
    "nodes_before_node_limits": Rule(
        "a job that takes no more nodes than a limit on the nodes of several jobs allows waits for nodes if there are "
        "none, though the limit would keep it out, too (measured on 24.11.5; 23.02 to 24.05: open)",
        "24.11",
        section="slurm-priority-and-limits 6.2",
    ),
    "gang_counts_cpus": Rule(
        "CR_CPU makes gang scheduling add up CPUs instead of comparing cores",
        None,
        until="23.11",
        section="slurm-gang-and-select 1.2",
        default=True,
    ),
    "exempt_time_guards_overlay": Rule(
        "PreemptExemptTime protects under SUSPEND,GANG if it is set cluster-wide",
        "26.05",
        section="slurm-preemption 1.6",
    ),
    "min_exempt_priority": Rule(
        "min_exempt_priority is known",
        "23.02",
        section="slurm-preemption 1.7",
    ),
    "licence_overlap": Rule(
        "jobs that hold a licence the preemptor wants are candidates wherever they run",
        "23.02",
        section="slurm-preemption 1.2 no. 8",
    ),
    "reclaim_licenses": Rule(
        "licences can be a reason to preempt",
        "23.02",
        section="slurm-preemption 1.11",
    ),
    "only_short_licences": Rule(
        "only holders of licences really short become victims",
        "24.11.1",
        section="slurm-preemption 1.11",
    ),
    "priority_modifier": Rule(
        "the PRIORITY modifier is known",
        "25.05",
        section="slurm-preemption 1.3",
    ),
    "last_alternative_preempts": Rule(
        "only the last feature alternative may preempt",
        "25.11.6",
        section="slurm-preemption 5.0 no. 6",
    ),
    "off_partition_keeps_rows": Rule(
        "jobs of a partition that is OFF may still share its own rows",
        "23.11.2",
        section="slurm-preemption 5.2.2 step 4",
    ),
    "only_sharing_jobs_block": Rule(
        "a partition with several rows blocks others only where one of its jobs really shares",
        "24.05",
        section="slurm-preemption 5.2.1",
    ),
    "sharers_block_beside_rows": Rule(
        "where another partition with several rows has had jobs, a job that offers to share keeps others off its nodes "
        "even if it runs in a partition of one row",
        "24.11",
        "26.05",
        section="slurm-preemption 5.2.1",
    ),
    "denied_nodes_stay_denied": Rule(
        "a node with cores of a higher tier is out of reach of a whole-node job; before, such a job got what "
        "was left of it once another node would have served",
        "23.02.5",
        section="slurm-gang-and-select 4.3.2",
    ),
    "exclusive_stops_after_step_one": Rule(
        "without gang only FORCE jobs look beyond unused cores",
        "26.05",
        section="slurm-gang-and-select 4.3.2",
    ),
    "qos_suspend_simulated": Rule(
        "QOS suspension simulates the removal before it uses the extra row",
        "24.11.2",
        section="slurm-preemption 5.2.5",
    ),
    "forecast_in_batches": Rule(
        "select/cons_tres lets jobs end in batches when it estimates a start; not in force under EASY, which "
        "promises the first instant",
        "1",
        section="slurm-preemption 5.2.6",
    ),
    "linear_takes_completing_required": Rule(
        "select/linear starts a job on nodes that it requires although another job is still being cleaned from them "
        "(a defect)",
        "1",
        section="slurm-preemption 5.0 no. 3",
        defect=True,
    ),
    "linear_memory_of_first_node": Rule(
        "select/linear has a job that does not say how much memory it needs ask every node for all that the first node "
        "in question has; nodes with less are out of its reach, and it may wait for good; larger nodes are charged for "
        "all that they have (a defect)",
        "1",
        section="slurm-gang-and-select 4.2.5",
        defect=True,
    ),
    "linear_counts_tasks_per_node": Rule(
        "select/linear lets a node count with no more CPUs than the tasks given by --ntasks-per-node can use when it "
        "chooses among nodes that differ",
        "1",
        section="slurm-gang-and-select 4.2.5 no. 2",
    ),
    "linear_forecast_tolerates_one": Rule(
        "select/linear takes a node on which one job runs that shares for usable when it estimates a start, even for "
        "jobs that do not share; the start then fails, and backfill keeps the nodes meanwhile; not in force under "
        "EASY",
        "1",
        section="slurm-preemption 5.1.4 no. 1",
    ),
    "forecast_beside_running": Rule(
        "select/cons_tres does not ask for nodes on which no job runs when it estimates the start of a job that wants "
        "them to itself; with gang scheduling it finds a row there, the start then fails, and backfill keeps the "
        "nodes meanwhile; not in force under EASY",
        "1",
        section="slurm-preemption 5.2.6",
    ),
    "forecast_beside_sharers": Rule(
        "select/cons_tres does not ask for nodes without sharing jobs of other partitions when it estimates the start "
        "of a job that does not share; the start then fails, and backfill keeps the nodes meanwhile; not in force "
        "under EASY",
        "24.05",
        section="slurm-preemption 5.2.6",
    ),
    "forecast_alone_first": Rule(
        "backfill first estimates the start of a job that offers to share as if it did not, unless it wants features; "
        "select/cons_tres may find it room beside jobs that do not share, where the start then fails, and backfill "
        "keeps the nodes meanwhile; select/linear looks at nodes with at most one job; not in force under EASY",
        "1",
        section="slurm-gang-and-select 5.4",
    ),
    "forecast_exclusive_alone": Rule(
        "backfill estimates the start of an --exclusive job of a FORCE partition under select/linear only as if it did "
        "not share, though it does once it starts; not in force under EASY",
        "24.11",
        section="slurm-gang-and-select 5.4",
    ),
    "forecast_counts_suspended": Rule(
        "an estimated start counts on the ends of suspended jobs, too, at the deadlines that they had when they were "
        "suspended; not in force under EASY",
        "1",
        section="slurm-preemption 5.2.6",
    ),
    "forecast_over_time_in_a_second": Rule(
        "under select/cons_tres a job whose time is over is estimated to leave a second from now; later at once, so "
        "that backfill tries others in its place, in vain; not in force under EASY",
        None,
        until="24.11",
        section="slurm-preemption 5.2.6",
    ),
    "linear_forecast_over_time_in_a_second": Rule(
        "under select/linear a job whose time is over is estimated to leave a second from now, in every release; not "
        "in force under EASY",
        "1",
        section="slurm-preemption 5.2.6",
    ),
    "forecast_ends_at_relevant_job": Rule(
        "an estimated start is the end of a job on the nodes chosen, not of the last one removed",
        "25.11",
        section="slurm-preemption 5.2.6",
    ),
    "het_blocks_pass": Rule(
        "a pending heterogeneous job whose partition is closed ends the main pass",
        "24.05.5",
        until="26.05",
        section="slurm-gang-and-select 5.3 no. 6",
    ),
    "begin_time_wakes_no_backfill": Rule(
        "backfill makes no pass for a job whose begin time or requeue delay is over, unless it makes one pass after "
        "the other, as it does while it keeps idle nodes for others; the main scheduler has to look at it first",
        "1",
        section="slurm-gang-and-select 5.3",
    ),
    "reasons_are_news": Rule(
        "while a job waits for something other than resources, backfill makes one pass after the other; so it sees at "
        "its next pass that a begin time, an exempt time or a grace time is over",
        "1",
        section="slurm-gang-and-select 5.3, 5.4",
    ),
    "het_waits_for_resources": Rule(
        "a component of a heterogeneous job waits for Resources from its submission on, even behind others, so that it "
        "wakes no backfill (measured on 22.05.8; later releases: open)",
        "1",
        section="slurm-gang-and-select 5.3",
    ),
    "waits_behind_others_at_once": Rule(
        "a job that comes while others are eligible waits for Priority from then on, before it is looked at",
        "1",
        section="slurm-gang-and-select 5.3",
    ),
    "resources_wake_no_backfill": Rule(
        "a look of the main scheduler at jobs whose begin time or requeue delay is over wakes backfill only if one "
        "starts or a reason changes other than to Resources",
        "1",
        section="slurm-gang-and-select 5.3",
    ),
    "unable_on_the_rest_holds_up_none": Rule(
        "a job that could not run on the nodes left in a pass of the main scheduler, even if they were idle, waits for "
        "ReqNodeNotAvail and closes no partition",
        "1",
        section="slurm-gang-and-select 4.1.4, 5.3 no. 4",
    ),
    "unlicensed_withdraws_required": Rule(
        "a job that waits for licences withdraws the nodes that it requires from those behind it in a pass of the main "
        "scheduler (measured on 24.11.5; 23.02 to 24.05: open)",
        "24.11",
        section="slurm-gang-and-select 5.3 no. 4",
    ),
    "put_off_to_third_record": Rule(
        "with assoc_limit_stop, backfill keeps nodes for a limited job from the third change of promises behind its "
        "end on, if there are so many, and not from 500 s later. That is where no promise on its nodes is over in time "
        "(inferred from two plays of 24.11.5; 23.02 to 24.05: open)",
        "24.11",
        section="slurm-priority-and-limits 11.1",
    ),
    "nodes_before_licences": Rule(
        "under select/linear a job that lacks nodes and licences waits for nodes, and closes its partition (measured "
        "on 24.11.5; 23.02 to 24.05: open)",
        "24.11",
        section="slurm-gang-and-select 5.3 no. 4",
    ),
    "release_renews_priority": Rule(
        "the release of a job that waits gives it a new priority even if it is not held; with priority/basic that is "
        "the lowest, its nice value left out (measured on 22.05.8; later releases: open)",
        "1",
        section="slurm-gang-and-select 5.1",
    ),
    "reservation_first": Rule(
        "jobs that ask for a reservation stand before all others in the queue, whatever their tier and priority",
        "1",
        section="slurm-priority-and-limits 9 no. 8",
    ),
    "het_planned_together": Rule(
        "backfill keeps nodes for a component of a heterogeneous job from when those planned before it in the pass "
        "could start, not from when it could start itself",
        "1",
        section="slurm-preemption 5.3 no. 8",
    ),
    "het_starts_in_turn": Rule(
        "backfill starts the components of a heterogeneous job one by one: others make way for the first that cannot "
        "start, and those that started are taken back, to wait as requeued jobs do",
        "1",
        section="slurm-preemption 5.3 no. 8",
    ),
    "backfill_plans_beyond_array_limit": Rule(
        "backfill keeps nodes for tasks of an array beyond its limit (%n), too, as long as fewer are at work",
        None,
        until="23.02.4",
        section="slurm-priority-and-limits 8 no. 2",
    ),
    "no_time_limit_exceeds_minutes": Rule(
        "a job without a time limit, its own or a default, exceeds every limit on TRES minutes, whatever its partition "
        "allows, unless a limit gives it one (measured on 22.05.8; later releases: open)",
        "1",
        section="slurm-priority-and-limits 6.2",
    ),
    "end_ignores_usage_factor": Rule(
        "under priority/basic, the end of a job takes off its run minutes without the UsageFactor of its QOS, so that "
        "some stay for good, or others lose theirs (a defect; 25.05 and 25.11: open)",
        None,
        until="26.05",
        section="slurm-priority-and-limits 6.2",
        defect=True,
    ),
    "backfill_asks_limits_for_a_minute": Rule(
        "under preemption, backfill holds a job of a QOS with NoReserve to limits on minutes as if it ran for one "
        "(measured on 22.05.8; later releases: open)",
        "1",
        section="slurm-priority-and-limits 11.1",
    ),
    "backfill_starts_for_a_minute": Rule(
        "under preemption, backfill starts a job of a QOS with NoReserve with a time limit of one minute, and gives it "
        "its own then: its run minutes beyond the first are booked without the UsageFactor of its QOS (a defect)",
        None,
        until="23.11.7",
        section="slurm-priority-and-limits 6.2",
        defect=True,
    ),
    "unknown_usage_is_huge": Rule(
        "with DEPTH_OBLIVIOUS, users whose usage has not been worked out since the run began count among their "
        "siblings as if it was huge, unless it is said what was used before that (a defect; measured on 22.05.8; "
        "later releases: open)",
        "1",
        section="slurm-priority-and-limits 4",
        defect=True,
    ),
    "unknown_accounts_are_none": Rule(
        "an account that accounting does not know counts for nothing in AllowAccounts and DenyAccounts; a partition "
        "that allows only such accounts is open to all",
        "23.02",
        section="slurm-priority-and-limits 7",
    ),
    "backfill_plans_for_barred_accounts": Rule(
        "backfill keeps nodes, from now on if they are idle, for a job whose account may not use its partition; for "
        "one whose QOS may not it keeps none (a defect; measured on 22.05.8; later releases: open)",
        "1",
        section="slurm-priority-and-limits 7",
        defect=True,
    ),
    "backfill_skips_unlicensed": Rule(
        "backfill skips a job whose licences are not there now, and keeps no nodes for it",
        "1",
        section="slurm-preemption 1.11",
    ),
    "het_needs_licence_for_plan": Rule(
        "backfill keeps no nodes for a component of a heterogeneous job that lacks a licence",
        "1",
        section="slurm-preemption 5.3 no. 8",
    ),
    "het_starts_without_licences": Rule(
        "backfill looks at the licences of each component of a heterogeneous job by itself, and no more when they "
        "start: together they may take more than there are (a defect)",
        "1",
        section="slurm-preemption 5.3 no. 8",
        defect=True,
    ),
    "het_starts_last": Rule(
        "backfill starts heterogeneous jobs when it has been through the queue: until then it keeps whole nodes for "
        "them, and then their components choose anew, beside jobs that have started in the pass",
        "1",
        section="slurm-preemption 5.3 no. 8",
    ),
    "stale_shadows": Rule(
        "a tick that swaps shadows may leave a lower row as it was (a defect)",
        "1",
        section="slurm-gang-and-select 3.5",
        defect=True,
    ),
    "resume_runs_beside": Rule(
        "a job resumed by a person runs beside the holder of its cores until its turn (a defect)",
        "1",
        section="slurm-gang-and-select 2.4",
        defect=True,
    ),
    "resume_leaves_stopped": Rule(
        "where a person resumes a job that gang had stopped before him, while others hold its cores, its processes "
        "stay stopped although it counts as running, until gang has stopped it and let it go on again (a defect; "
        "measured on 22.05.8; later releases: open)",
        "1",
        section="slurm-gang-and-select 2.4",
        defect=True,
    ),
    "gang_kills_under_any_shadow": Rule(
        "a job of a CANCEL or REQUEUE partition that loses its turn is killed or requeued while its partition has any "
        "shadow, even one on other nodes (a defect)",
        "1",
        section="slurm-gang-and-select 1.5",
        defect=True,
    ),
    "killed_at_resume_fails": Rule(
        "a job that gang kills or requeues in the moment in which a person resumes it ends as FAILED (a defect)",
        "1",
        section="slurm-gang-and-select 1.5, 2.4",
        defect=True,
    ),
    "killed_at_resume_keeps_nodes": Rule(
        "the nodes of such a job stay COMPLETING for good: no job starts there any more (a defect; measured on "
        "22.05.8; later releases: open)",
        "1",
        section="slurm-gang-and-select 1.5, 2.4",
        defect=True,
    ),
    "gang_ends_leaving": Rule(
        "a job that is to be requeued ends as CANCELLED when a job of a higher tier starts on nodes that it has left, "
        "while it is still leaving others, and gang finds it under that shadow (a defect)",
        "1",
        section="slurm-gang-and-select 1.5, 2.3",
        defect=True,
    ),
    "gang_skips_grace": Rule(
        "gang kills and requeues without grace time or notice (a defect)",
        "1",
        section="slurm-gang-and-select 2.7",
        defect=True,
    ),
    "linear_overlays_off": Rule(
        "under SUSPEND,GANG select/linear lays a job over one of a lower tier that is OFF, which gang then stops "
        "(a defect)",
        "1",
        section="slurm-gang-and-select 4.4.6",
        defect=True,
    ),
    "whole_gpus_beside_parts": Rule(
        "a GPU of which jobs have shards is given as a whole, too; one that is given as a whole gives no shards "
        "(a defect)",
        None,
        until="23.02",
        section="docs/gpus.md",
        defect=True,
    ),
    "gpus_for_used_sockets": Rule(
        "--gpus-per-socket gives them for each socket of the job's cores, and for those asked for if they are more; a "
        "socket has its share of a node's GPUs",
        "1",
        section="docs/gpus.md",
    ),
    "overflow_keeps_marks": Rule(
        "a job that finds no room for its cores when a person resumes it leaves its mark on its nodes for "
        "good; jobs that want to share these nodes or have them whole no longer start there; two marks of EXCLUSIVE "
        "partitions go together with the first of them (a defect)",
        None,
        until="23.02",
        section="slurm-gang-and-select 4.3.10",
        defect=True,
    ),
    "linear_suspend_frees_memory": Rule(
        "select/linear thinks that suspending a victim frees its nodes' memory (a defect)",
        "1",
        section="slurm-preemption 5.1.3",
        defect=True,
    ),
    "linear_forgets_resumed_sharers": Rule(
        "select/linear no longer counts a job that shares its nodes once a person has suspended and resumed it: "
        "others start beside it, even in partitions of OverSubscribe=NO (a defect)",
        "1",
        section="slurm-gang-and-select 4.2.6",
        defect=True,
    ),
    "linear_counts_forced_gpus": Rule(
        "select/linear counts the GPUs of jobs in partitions of FORCE:2 and more; all others get nodes that have "
        "enough GPUs left, and are charged for none (a defect)",
        "1",
        section="slurm-gang-and-select 4.2.6",
        defect=True,
    ),
    "linear_resume_charges_all_memory": Rule(
        "when a person resumes a job, select/linear with CR_Memory charges all memory of its nodes; what was too much "
        "stays charged after the job has ended (a defect)",
        "1",
        section="slurm-gang-and-select 4.2.6",
        defect=True,
    ),
    "linear_suspend_keeps_deadline": Rule(
        "a victim that select/linear suspended keeps its deadline and is killed at it (a defect)",
        "1",
        section="slurm-preemption 4.6",
        defect=True,
    ),
}


def version(text: str) -> tuple[int, ...]:
    """Return ``24.05.5`` as (24, 5, 5).

    :raises ValueError: if `text` is no release number.
    """
    parts = text.split("-")[0].split(".")
    try:
        return tuple(int(part) for part in parts)
    except ValueError:
        raise ValueError(f"got {text!r}; allowed: numbers such as {NEWEST_RELEASE!r}") from None


_RELEASES = ("22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05", "26.11")
"""All releases between those two."""
_RELEASE = re.compile(r"[0-9]{2}\.[0-9]{1,2}(\.[0-9]{1,3}){0,2}(-[0-9A-Za-z.-]{1,20})?")


def stated(text: str) -> str:
    """Return a release as people state it, if it has the form of one.

    :raises ValueError: it has not; says what is one, and which is near.
    """
    if _RELEASE.fullmatch(text) is None:
        allowed = f"a Slurm release, {OLDEST_RELEASE!r} to {NEWEST_RELEASE!r}"
        raise ValueError(f"got {text[:60]!r}; allowed: {allowed}{nearest(text[:60], _RELEASES)}")
    return text


def doubt(release: str) -> str:
    """Say which rules count for a release of which none are known; empty: it is among the recorded ones."""
    asked = version(release)[:2]
    known = [version(each) for each in _RELEASES]
    recorded = f"recordings are of {OLDEST_RELEASE} to {NEWEST_RELEASE}"
    if asked < known[0]:
        return f"Slurm {release} is older than what is known here ({recorded}): the rules of {OLDEST_RELEASE} count"
    if asked > known[-1]:
        return f"Slurm {release} is newer than what is known here ({recorded}): the rules of {NEWEST_RELEASE} count"
    if asked not in known:
        before = _RELEASES[bisect.bisect(known, asked) - 1]
        return f"there is no Slurm {release}: the rules of {before} count{nearest(release, _RELEASES)}"
    return ""


def changes() -> dict[str, str]:
    """Return each rule that came or went with a release -> that release, in the order of the releases."""
    turns = {name: rule.until or rule.since or "" for name, rule in RULES.items()}
    turned = [
        name for name, release in turns.items() if release and version(release) >= version(OLDEST_RELEASE)
    ]
    return {name: turns[name] for name in sorted(turned, key=lambda name: version(turns[name]))}


def in_force(release: str | None, overrides: Mapping[str, bool]) -> dict[str, bool]:
    """Return rule name -> whether it holds for `release` (None: the defaults of this project)."""
    chosen = version(release or NEWEST_RELEASE)
    answer = {}
    for name, rule in RULES.items():
        begun = rule.since is not None and chosen >= version(rule.since)
        over = rule.until is not None and chosen >= version(rule.until)
        holds = (begun or (rule.since is None and rule.until is not None)) and not over
        if release is None and rule.default is not None:
            holds = rule.default
        answer[name] = overrides.get(name, holds)
    return answer
