extension MetricGroup {
    /// The process, under the names that Prometheus client libraries use.
    package static let process = MetricGroup(
        metrics: [.processorTime, .residentMemory, .virtualMemory, .openFiles, .openFileLimit, .startTime],
        counters: [])
}

extension Metric {
    package static let processorTime = Metric("process_cpu_seconds_total", help: "Processor time, user and system.")
    package static let residentMemory = Metric("process_resident_memory_bytes", help: "Memory in use.")
    package static let virtualMemory = Metric("process_virtual_memory_bytes", help: "Address space in use.")
    package static let openFiles = Metric("process_open_fds", help: "Open file descriptors.")
    package static let openFileLimit = Metric("process_max_fds", help: "Limit of open file descriptors.")
    package static let startTime = Metric("process_start_time_seconds", help: "When the process started.")
}
