/// The service manager that started this process, from the environment variables of sd_notify(3) and sd_watchdog_enabled(3).
struct ServiceManager: Sendable {
    let socket: NotifySocket
    /// The watchdog timeout: the manager restarts a service that sends no keep-alive for this long. nil: no watchdog.
    let watchdog: Duration?

    /// nil when `NOTIFY_SOCKET` is missing or unusable.
    ///
    /// - Parameter processID: A watchdog for another process, by `WATCHDOG_PID`, is ignored.
    init?(environment: [String: String], processID: Int32) {
        guard let socket = environment["NOTIFY_SOCKET"].flatMap(NotifySocket.init) else { return nil }
        self.socket = socket
        let isMeant = environment["WATCHDOG_PID"].map { $0 == String(processID) } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        watchdog = isMeant && microseconds > 0 ? .microseconds(microseconds) : nil
    }
}
