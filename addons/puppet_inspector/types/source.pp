# @summary Where a file comes from: a path on the node, or what the resource type `file` accepts as a source.
type Puppet_inspector::Source = Pattern[/\A\//, /\Apuppet:\/\//, /\Ahttps:\/\//]
