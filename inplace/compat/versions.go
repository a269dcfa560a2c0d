package compat

import versions "k8s.io/apimachinery/pkg/util/version"

// OlderThan reports whether the version is older than least. A number that does not parse is older than any version.
func OlderThan(least *versions.Version, number string) bool {
	version, err := versions.ParseGeneric(number)
	return err != nil || version.LessThan(least)
}
