import StatusProtocol
import Core
import WakuCrypto

extension NotificationMachine {
    /// Whether the request still needs publishing: its message may have been cancelled or given up meanwhile.
    func isAwaitingPublication(_ ticket: Ticket, at now: Timestamp) -> Bool {
        guard let request = requests[ticket], let record = messages[request.messageID], now.since(record.begun) < Self.messageLife else {
            return false
        }
        return record.devices.contains { device in
            let id = DeviceID(registrant: device.registrant, installationID: device.installationID)
            return request.devices[id] != nil && device.state == .asking(StoredServer(request.server), deadline: nil)
        }
    }

    mutating func published(_ ticket: Ticket, at now: Timestamp) {
        changeDevices(of: ticket) { device, server in
            guard device.state == .asking(server, deadline: nil) else { return }
            device.state = .asking(server, deadline: StoredTime(now + Self.answerDeadline))
        }
    }

    /// A failed publication says nothing about the server: the round ends, and restarts after its pause.
    mutating func notPublished(_ ticket: Ticket, at now: Timestamp, jitter: inout Jitter) {
        changeDevices(of: ticket) { device, server in
            guard device.state == .asking(server, deadline: nil) else { return }
            device.endRound(at: now, jitter: jitter.next())
        }
    }

    func isAwaiting(_ ticket: Ticket, from server: PublicKey, about messageID: [UInt8]) -> Bool {
        requests[ticket].map { $0.server == server && $0.messageID == messageID } ?? false
    }

    /// Handles an answer signed by the server. Verdicts on devices that were not in the request are ignored.
    ///
    /// - Parameter verdict: The answer about a device; nil when it contains none.
    /// - Returns: The devices that the server refused.
    mutating func answered(
        _ ticket: Ticket, by server: PublicKey, at now: Timestamp, verdict: (DeviceID) -> NotificationVerdict?
    ) -> [Refusal] {
        guard let request = requests[ticket], request.server == server else { return [] }
        var refused: [Refusal] = []
        let queriesOnce = queriesOnceAfterRefusal
        changeDevices(of: ticket) { device, server in
            guard !device.isDone || device.state == .done(.gaveUp(.noServer)) || device.state == .done(.gaveUp(.expired)) else { return }
            let id = DeviceID(registrant: device.registrant, installationID: device.installationID)
            guard let verdict = verdict(id) else { return }
            if verdict == .notified {
                // Applies even if another server was asked meanwhile.
                device.state = .done(.notified(by: server))
                return
            }
            guard case .asking(server, _) = device.state else { return }
            switch verdict {
            case .tokenRefused, .notRegistered:
                if let token = request.devices[id] {
                    refused.append(.init(device: id, server: server.key, token: token, isAbsent: verdict == .notRegistered))
                }
                // A query may return a token that the same server accepts; the tokens for other servers are probably as old.
                let isOver = queriesOnce ? device.wasRefused == true : device.wasQueried
                if isOver {
                    device.tried.append(server.key)
                } else {
                    device.mustQuery = true
                    if queriesOnce { (device.wasRefused, device.wasQueried) = (true, false) }
                }
                device.state = .ready
            case .failed where !device.askedAgain.contains(server.key):
                device.askedAgain.append(server.key)
                device.state = .askingAgain(server, at: StoredTime(now + Self.askAgainDelay))
            case .failed, .otherError, .notified:
                device.tried.append(server.key)
                device.state = .ready
            }
        }
        return refused
    }

    /// Called when a query about the registrant ended.
    ///
    /// - Parameter wasAnswered: Whether every server answered; else its time was over.
    mutating func queryEnded(about registrant: PublicKey, wasAnswered: Bool) {
        for id in active.ids(for: registrant) {
            guard var record = messages[id] else { continue }
            let before = record
            for index in record.recipients.indices where record.recipients[index].registrant == registrant {
                record.recipients[index].search?.wasAnswered = wasAnswered
            }
            if record != before { store(record, before) }
        }
    }

    private mutating func changeDevices(of ticket: Ticket, _ change: (inout MessageRecord.Device, StoredServer) -> Void) {
        guard let request = requests[ticket], var record = messages[request.messageID] else { return }
        let before = record
        let server = StoredServer(request.server)
        for index in record.devices.indices {
            let id = DeviceID(registrant: record.devices[index].registrant, installationID: record.devices[index].installationID)
            if request.devices[id] != nil { change(&record.devices[index], server) }
        }
        if record != before { store(record, before) }
    }
}
