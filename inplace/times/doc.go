// Package times computes with moments that it is given: nothing in inplace has a clock.
package times
