package argoexpr

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const store = `{"store":{"book":[
	{"category":"reference","author":"Rees","title":"Sayings","price":8.95},
	{"category":"fiction","author":"Waugh","title":"Sword","price":12.99},
	{"category":"fiction","author":"Melville","title":"Moby Dick","isbn":"0-553","price":8.99}],
	"bicycle":{"color":"red","price":19.95}},"the key":1,"list":[0,1,2,3,4,5],"limit":9,"text":"abc","nothing":null}`

func TestJSONPath(t *testing.T) {
	tests := map[string]string{
		"$.limit":                             `9`,
		"$":                                   store,
		"$.store.bicycle.color":               `"red"`,
		"$['store']['bicycle']['color']":      `"red"`,
		`$["the key"]`:                        `1`,
		"$['the key']":                        `1`,
		"$.list[0]":                           `0`,
		"$.list[-1]":                          `5`,
		"$.list[1:3]":                         `[1,2]`,
		"$.list[:2]":                          `[0,1]`,
		"$.list[4:]":                          `[4,5]`,
		"$.list[-2:]":                         `[4,5]`,
		"$.list[::2]":                         `[0,2,4]`,
		"$.list[1:5:-2]":                      `[4,2]`,
		"$.list[0,2]":                         `[0,2]`,
		"$.list[*]":                           `[0,1,2,3,4,5]`,
		"$.list.length":                       `6`,
		"$.text.length":                       `3`,
		"$.list[(@.length-1)]":                `5`,
		"$.store.book[*].author":              `["Rees","Waugh","Melville"]`,
		"$..author":                           `["Rees","Waugh","Melville"]`,
		"$.store..price":                      `[19.95,8.95,12.99,8.99]`,
		"$.store.book[?(@.isbn)].title":       `["Moby Dick"]`,
		"$.store.book[?(@.price < 10)].title": `["Sayings","Moby Dick"]`,
		"$.store.book[?(@.price < $.limit)].title":                    `["Sayings","Moby Dick"]`,
		"$.store.book[?(@.category=='fiction' && @.price>10)].title":  `["Sword"]`,
		"$.store.book[?(@['category'] == 'fiction')].author":          `["Waugh","Melville"]`,
		"$.store.book[?(@.author =~ '^M')].author":                    `["Melville"]`,
		"$.store.book[?(@.price*2 > 25 || !(@.price > 8.95))].author": `["Rees","Waugh"]`,
		"$.list[?(@ > 3)]":                 `[4,5]`,
		"$.store.book['title','author']":   `[]`,
		"$.store.bicycle['color','price']": `["red",19.95]`,
		"$.store.book[?(@.none)]":          `[]`,
		"$.nothing":                        `null`,
		"$.store.*.color":                  `["red"]`,
		"$.list[10:]":                      `[]`,
	}
	var value any
	if err := json.Unmarshal([]byte(store), &value); err != nil {
		t.Fatal(err)
	}
	for path, text := range tests {
		t.Run(path, func(t *testing.T) {
			got, err := jsonPath(path, value)
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for path, want := range map[string]string{
		"":               "does not begin with $",
		"store":          "does not begin with $",
		"$.no":           `there is no "no"`,
		"$.list[9]":      "there is no element 9 in a list of 6",
		"$.text[0]":      "has no element 0",
		"$.list[":        "has no closing ]",
		"$.list[]":       "brackets are empty",
		"$.list[a]":      "neither a number nor a name in quotes",
		"$.list[1:2:0]":  "step of 0",
		"$.list[1:a]":    "is no number",
		"$.":             `ends after "."`,
		"$..":            `ends after ".."`,
		"$x":             "is not expected",
		"$.list[?(@ >)]": "where a value is expected",
		"$.list['a]":     "has no closing ]",
	} {
		if got, err := jsonPath(path, value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want an error that holds %q", path, got, err, want)
		}
	}
	nested := any(1.0)
	for range 30 {
		nested = []any{nested, nested}
	}
	if _, err := jsonPath("$..*", nested); err == nil || !strings.Contains(err.Error(), "too many values") {
		t.Errorf("a huge value: %v", err)
	}
}
