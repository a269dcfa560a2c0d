// Package write carries steps out: one guarded write each, side by side as far as their order does not matter. It knows which versions objects
// have reached by that, and tells a write that is refused for good from one that came too late.
package write
