import StatusProtocol
import Core
import Waku
import WakuCrypto

/// What became of requests.
extension NotificationMachine {
    mutating func published(_ ticket: Ticket, at now: Timestamp) {
        changeDevices(of: ticket) { device, server in
            guard device.state == .asking(server, deadline: nil) else { return }
            device.state = .asking(server, deadline: StoredTime(now + Self.answerDeadline))
        }
    }

    /// It says nothing of the server: the round is over, and begins again after its pause.
    mutating func notPublished(_ ticket: Ticket, at now: Timestamp, jitter: inout Jitter) {
        var jitters: [Double] = []
        for _ in 0..<(requests[ticket]?.devices.count ?? 0) { jitters.append(jitter.next()) }
        changeDevices(of: ticket) { device, server in
            guard device.state == .asking(server, deadline: nil) else { return }
            device.endRound(at: now, jitter: jitters.popLast() ?? 0)
        }
    }

    /// Whether an answer to this request is awaited from the server.
    func isAwaiting(_ ticket: Ticket, from server: PublicKey, about messageID: [UInt8]) -> Bool {
        requests[ticket].map { $0.server == server && $0.messageID == messageID } ?? false
    }

    /// What the server signed. It says nothing of devices that it was not asked for.
    ///
    /// - Parameters:
    ///   - ticket: Of the request.
    ///   - server: Who signed the answer.
    ///   - now: The client's time.
    ///   - verdict: The answer about a device; nil when it has none.
    /// - Returns: The devices whose tokens it does not take, with those tokens.
    mutating func answered(
        _ ticket: Ticket, by server: PublicKey, at now: Timestamp, verdict: (DeviceID) -> NotificationVerdict?
    ) -> [(device: DeviceID, server: PublicKey, token: AccessToken)] {
        guard let request = requests[ticket], request.server == server else { return [] }
        var refused: [(device: DeviceID, server: PublicKey, token: AccessToken)] = []
        let queriesOnce = queriesOnceAfterRefusal
        changeDevices(of: ticket) { device, server in
            guard !device.isDone || device.state == .done(.gaveUp(.noServer)) || device.state == .done(.gaveUp(.expired)) else { return }
            let id = DeviceID(registrant: device.registrant, installationID: device.installationID)
            guard let verdict = verdict(id) else { return }
            if verdict == .notified {
                // Also when another server is being asked meanwhile.
                device.state = .done(.notified(by: server))
                return
            }
            guard case .asking(server, _) = device.state else { return }
            switch verdict {
            case .tokenRefused:
                if let token = request.devices[id] { refused.append((id, server.key, token)) }
                // With a token from a query the same server may take it; other servers' tokens are probably as old.
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
