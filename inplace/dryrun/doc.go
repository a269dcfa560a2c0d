// Package dryrun says what admission's answer about a new pod means for running pods.
//
// It reads the answer of a dry run, and does not ask the API server itself. The planner decides when to ask: before an update begins, once
// for each update revision. The leader remembers the answer for as long as the update lasts, and a new leader asks again (engine.Memory).
// Webhooks know nothing of dry runs. They hold writes until the update falls back.
//
// The answers, and what follows:
//
//   - Refused: the update is native, where the same policy decides.
//   - Other images than the template's: the pods that are moved get those. What a pod had before does not matter, since it becomes what a
//     new pod would be. Only a partially patched pod has its earlier images noted in its mark, for the way back.
//   - Another image of an injected container, as after the upgrade of a service mesh: the pods get it if all containers of the template
//     restart anyway, and nothing else of that container differs. An undo keeps it. Otherwise the update is native.
//   - Other containers, other names of variables or other mount paths than running pods have, or more pull secrets: native.
//     Values of variables and names of volumes are not compared, since they may differ from pod to pod. Where the update adds tolerations,
//     the tolerations that the pods would then have are compared, too.
//   - No answer about the pod: a quota is full (it refuses after all policies have agreed), a webhook has side effects and is not called,
//     or Stayput may not create pods. The update is made as if admission changed nothing. A pod whose image is not its template's shows
//     that admission does, and is native.
//   - A failure: nothing begins, since natively no pod would be created either. After a minute the update is native, in case only dry runs
//     fail (inplace.LeaderPatience).
//
// The same dry run also finds out which of the PersistentVolumeClaims that the pods share only one node can mount (Result.Claim). It is one
// reason why there may be no room for surge pods.
package dryrun
