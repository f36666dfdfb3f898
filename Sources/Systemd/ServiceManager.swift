/// The service manager that started this process, by what it left in the environment: sd_notify(3), sd_watchdog_enabled(3).
package struct ServiceManager: Sendable {
    package let socket: NotifySocket
    /// It ends a service that shows no life for so long; nil: it waits for no signs.
    package let watchdog: Duration?

    /// nil without `NOTIFY_SOCKET`, or when that can't be used here.
    /// - Parameter processID: A watchdog that is meant for another process does not count.
    package init?(environment: [String: String], processID: Int32) {
        guard let socket = environment["NOTIFY_SOCKET"].flatMap(NotifySocket.init) else { return nil }
        self.socket = socket
        let isMeant = environment["WATCHDOG_PID"].map { $0 == String(processID) } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        watchdog = isMeant && microseconds > 0 ? .microseconds(microseconds) : nil
    }
}
