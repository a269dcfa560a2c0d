// Package write carries steps out, each as one guarded write, and in parallel where their order does not matter. The writes of all workers
// take turns. It remembers which versions objects have reached by its writes. It tells a write that is refused for good from a write that
// came too late.
package write
