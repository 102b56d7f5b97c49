package argo

import "regexp"

// resultForm finds references to a call's standard output in a template's text.
var resultForm = regexp.MustCompile(`(?:steps|tasks)(?:\.|\[['"\\]+)([a-zA-Z0-9_-]+)(?:\.|['"\\]+\]\.?)outputs(?:\.|\[['"\\]+)result`)

// resultNames lists the calls of a graph whose standard output its own text refers to, by name.
func resultNames(source []byte) map[string]bool {
	out := map[string]bool{}
	for _, m := range resultForm.FindAllSubmatch(source, -1) {
		out[string(m[1])] = true
	}
	return out
}

// containerSetForm tells from a template's text that it is a container set.
var containerSetForm = regexp.MustCompile(`"containerSet":`)
