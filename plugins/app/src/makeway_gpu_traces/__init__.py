"""Replay published traces of GPU clusters.

=======  ===================================================================
module   what it owns
=======  ===================================================================
fields   numbers, dates and words of one row
trace    files of rows with a header: recognised, counted, put in order
philly   Microsoft Philly: the extract in CSV, the job log in JSON
helios   SenseTime Helios and Shanghai AI Lab's Acme, which share columns
alibaba  Alibaba: pods of 2023 (openb), high-priority and spot jobs of 2026
nodes    the machines of these clusters, and Helios' quotas
=======  ===================================================================

Spec: gpu-traces, section 1.
"""
