// Package times has calculations with points in time, which callers pass: nothing in inplace has a clock.
package times
