import Dispatch

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

    /// Runs what may take longer than the unit's time limit for the start, such as the migration of a large database.
    ///
    /// - Parameter delay: the time until the first notification.
    func extendingStart<Result>(after delay: DispatchTimeInterval = .seconds(5), _ body: () throws -> Result) rethrows -> Result {
        let queue = DispatchQueue(label: "waku-push.systemd.start")
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler { [socket] in socket.send(ServiceNotices.opening) }
        timer.schedule(deadline: .now() + delay, repeating: .seconds(ServiceNotices.startExtension / 3))
        timer.resume()
        defer {
            timer.cancel()
            // No notification follows later ones.
            queue.sync {}
        }
        return try body()
    }
}
