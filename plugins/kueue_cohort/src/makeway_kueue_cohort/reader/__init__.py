"""Read the manifests of a site: ClusterQueue, Cohort, ResourceFlavor, LocalQueue, WorkloadPriorityClass, Configuration.

`documents` takes YAML apart and keeps the lines, `objects` reads what each kind says, `quantity` reads amounts,
`machines` makes up nodes where manifests name none, `files` puts the configuration together.
"""
