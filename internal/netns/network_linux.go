package netns

// namespaces says that the system has network namespaces.
const namespaces = true
