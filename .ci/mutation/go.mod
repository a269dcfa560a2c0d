module github.com/stayput/stayput/ci/mutation

go 1.26.0
