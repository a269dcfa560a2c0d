// Package rights keeps the managers' own rights until they need them no more. A manager without rights can open no gate
// and leave no update to the native controllers. When Stayput is removed, its objects may be deleted in any order, and
// no hook need run. So every manager puts a finalizer on the five objects that give it its rights: its ServiceAccount,
// and its Role and ClusterRole with their bindings. While they are being deleted they are still in force.
//
// When one of them is being deleted, every manager ends, lets all updates fall back, opens all gates, and takes the
// finalizers off. The same happens when a manager is told to end and its Deployment is being deleted or scaled to 0.
package rights
