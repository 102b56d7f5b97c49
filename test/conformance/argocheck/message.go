package argocheck

import (
	"regexp"
	"strings"
)

// Class is a kind of failure, found from a message; "" is one that the comparison does not know.
type Class string

var exitCode = regexp.MustCompile(`exit (?:code|status):? (\d+)`)

// classes are tried in order; the first whose words are all in the message wins.
var classes = []struct {
	class Class
	words *regexp.Regexp
}{
	{"child failed", regexp.MustCompile(`(?i)child '.*' (?:failed|errored)`)},
	{"invalid spec", regexp.MustCompile(`(?i)invalid spec|is invalid`)},
	{"unresolved reference", regexp.MustCompile(`(?i)failed to resolve|unable to (?:resolve|substitute)|unresolved|cannot be resolved`)},
	{"missing output", regexp.MustCompile(`(?i)no such file|output.*(?:missing|not found|does not exist|was not written|no file)|(?:missing|not found|does not exist).*output`)},
	{"deadline", regexp.MustCompile(`(?i)deadline|timeout|timed out|duration limit`)},
	{"omitted", regexp.MustCompile(`(?i)omitted`)},
	{"condition false", regexp.MustCompile(`(?i)evaluated false`)},
}

// Classify finds the class of a failure's message.
func Classify(message string) Class {
	for _, c := range classes {
		if c.words.MatchString(message) {
			return c.class
		}
	}
	// What Kubernetes calls OOMKilled is a command killed by signal 9, exit code 137 wherever it runs.
	if m := exitCode.FindStringSubmatch(message); m != nil {
		return Class("exit code " + m[1])
	}
	if strings.Contains(message, "OOMKilled") {
		return "exit code 137"
	}
	return ""
}
