// Package deployments plans the update of a Deployment: which pods move, what becomes of its ReplicaSets meanwhile, and what its status
// says.
//
// While the update is held, only Stayput scales the ReplicaSets, and the native controllers see what happens through several watches. So
// this package decides the order in which pods move and replicas follow, and posts each change of replicas with its cause
// (Ledger). How a single pod is updated is in inplace/podstate, for every kind.
//
// Each stage gets what the stage before has decided (planner.Proceed): which pods have their turn (pacer), what becomes of the ReplicaSets
// (changer, surger), whether their replicas add up (Ledger), and which writes follow (patcher, status). What was observed does not
// change meanwhile (observed).
//
// This package must not know other kinds: what several kinds need goes to a package below them.
//
// A Set is one ReplicaSet as it was observed, with its pods, and Sets are all of them. Marking are the labels that they are to have. None
// of these depends on the whole update.
//
// # Ledger
//
// Scaling, surge pods, moves and the replacement of unreachable pods all change replicas, possibly in one plan. Every change is posted with
// its cause (ledger.go). If the changes do not add up, nothing of the plan is written, and the update falls back with
// inplace.CodeUnbalanced.
//
// # While pods move
//
// The ReplicaSet controller sees pods and ReplicaSets through different watches. Between seeing a pod leave and seeing its ReplicaSet
// lowered it would create a pod. Between seeing a pod come and seeing the new ReplicaSet raised it would delete one. So:
//
//  1. Stayput marks the new ReplicaSet and the old ones as updating. From then on deletions are held, and creations in a ReplicaSet that
//     has all its pods (Full).
//  2. It lowers the old ReplicaSet by the drained pods.
//  3. It patches the pods.
//  4. It raises the new ReplicaSet by the pods that have come. In the end it removes the marks.
//
// No step waits until the ReplicaSet controller has seen the one before: what that controller would do about it is refused. Waiting was
// expensive. The controller writes observedGeneration and status.replicas only when it is done with deletions. Each deletion takes one of
// its 20 requests a second, is refused, and is made again after the status. A thousand pods, a hundred at a time, took 130 to 200 s with
// that wait and take 60 s without it. A creation is rarely refused, since ReplicaSet and pods are written one after the other. It shows as
// a warning FailedCreate of the ReplicaSet.
//
// # Scaling
//
// While the update is held, the replicas of all ReplicaSets add up to those of the Deployment and its surge pods, with the annotations that
// the native controller would set. A user may scale the Deployment at any time. New pods go to the new ReplicaSet once that has an
// available pod. Pods are removed from old ReplicaSets first (Sets.Scale). Deletions are held while pods move, so for that moment
// the mark has a suffix with which they pass (revisions.Scaling).
//
// A rollout that the Deployment controller has begun is left to it (planner.nativeRolloutBegun): with two clients that scale, more pods
// could be unavailable than may be. Strategy Recreate promises that two versions never run at once. One replica keeps that promise in
// place. More are native.
package deployments
