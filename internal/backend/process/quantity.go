package process

import (
	"fmt"
	"strconv"
	"strings"
)

// Quantity reads a Kubernetes quantity: a number with a suffix such as m, k, Mi or e3. Empty is 0.
func Quantity(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	digits := strings.TrimRight(text, "EPTGMKkminu")
	factor, known := map[string]float64{
		"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	}[text[len(digits):]]
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil || !known || value < 0 {
		return 0, fmt.Errorf("%q is not a quantity such as 500m, 2, 128Mi or 1e9", text)
	}
	return value * factor, nil
}
