package apps

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A quantity may have as many digits as its object can hold, and an exponent of ten digits. With
// k8s.io/apimachinery/pkg/api/resource it takes seconds to decode a million digits, to compare 1e1000000 or to decode 1e-1000000,
// because the package writes the digits out. The time grows with the square of the number of digits. No real amount needs that
// many.
const (
	longestQuantity = 64
	largestExponent = 99
)

// canonicalQuantity returns a text that is the same for all spellings of an amount, as resource.Quantity compares, rounds and caps
// them. A text that is not a quantity, or not a bounded one, only equals itself.
func canonicalQuantity(text string) string {
	text = strings.TrimSpace(text)
	if !boundedQuantity(text) {
		return text
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return text
	}
	amount, ok := new(big.Rat).SetString(quantity.AsDec().String())
	if !ok {
		return text
	}
	return amount.RatString()
}

func boundedQuantity(text string) bool {
	at := strings.LastIndexAny(text, "eE")
	if len(text) > longestQuantity || at < 0 {
		return len(text) <= longestQuantity
	}
	exponent, err := strconv.Atoi(text[at+1:])
	return err != nil || -largestExponent <= exponent && exponent <= largestExponent // E and Ei are suffixes, not exponents
}

// unbounded returns the path to a quantity that is not bounded, or nil if there is none.
func unbounded(value any, shape *shape, path ...string) []string {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if found := unbounded(field, shape.of(key), append(path, key)...); found != nil {
				return found
			}
		}
	case []any:
		for i, element := range value {
			if found := unbounded(element, shape.of(""), append(path, strconv.Itoa(i))...); found != nil {
				return found
			}
		}
	case string, json.Number:
		if shape.isQuantity() && !boundedQuantity(fmt.Sprint(value)) {
			return slices.Clone(path)
		}
	}
	return nil
}
