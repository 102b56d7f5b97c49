package argo

import (
	"strconv"
	"time"
)

// validDuration says whether a text is a duration as Argo takes them: seconds, or a Go duration, or one in days ("2d").
func validDuration(s string) bool {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return true
	}
	if n := len(s); n > 1 && s[n-1] == 'd' {
		_, err := strconv.ParseFloat(s[:n-1], 64)
		return err == nil
	}
	_, err := time.ParseDuration(s)
	return err == nil
}
