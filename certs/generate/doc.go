// Package generate makes the webhooks' certificate in clusters without cert-manager (--generate-certificates).
//
// A certificate authority (CA) and its key are in one Secret. Each manager signs a serving certificate of its own with that key, and keeps
// it in memory. Each manager also writes the CA into caBundle of Stayput's webhook configurations. No manager leads in this: what each of
// them does follows from the Secret, the webhook configurations and the time, and a write that was decided on older objects is refused.
//
// A rotation has three steps, and a process may end between any two of them:
//
//  1. When a third of the lifetime is left, a new CA is added to the Secret.
//  2. It is added to caBundle, beside the CA before.
//  3. When it has been there for a while, so that every API server has read it, it signs what is served.
//
// A serving certificate ends with its CA, and a CA stays in caBundle until it ends. So API servers accept whatever a manager serves, and
// managers need not know of each other. The same holds if the Secret is emptied or forged: what is in caBundle stays there for a third of
// the lifetime, beside the new CA.
//
// github.com/open-policy-agent/cert-controller does the same for Gatekeeper, KEDA and Kueue, and is not used here. It replaces the CA in
// caBundle while managers still serve a certificate of the CA before: until the kubelet has written the changed Secret into their pods,
// calls fail. It watches all Secrets of the namespace, and writes whole webhook configurations as they are in its cache.
package generate
