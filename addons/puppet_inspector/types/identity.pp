# @summary The identity that the proxy uses towards the master on the agents' behalf.
type Puppet_inspector::Identity = Pattern[/\Akeys:\//, /\Amint:\//, /\Aheaders\z/, /\Anone\z/]
