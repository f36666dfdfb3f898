import StatusProtocol
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

    /// What the server signed. Entries of others' devices, or of devices that it was not asked for, are not believed.
    ///
    /// - Returns: The devices whose tokens it does not take, with those tokens.
    mutating func answered(
        _ ticket: Ticket, by server: PublicKey, _ response: PushNotificationResponse, at now: Timestamp
    ) -> [(registrant: PublicKey, installationID: InstallationID, server: PublicKey, token: AccessToken)] {
        guard let request = requests[ticket], request.server == server, request.messageID == response.messageID else { return [] }
        let reports = response.reports
        var refused: [(registrant: PublicKey, installationID: InstallationID, server: PublicKey, token: AccessToken)] = []
        changeDevices(of: ticket) { device, server in
            guard !device.isDone || device.state == .done(.gaveUp(.noServer)) || device.state == .done(.gaveUp(.expired)) else { return }
            let hash = KeyHash(of: device.registrant).bytes
            guard let report = reports.first(where: { $0.publicKey == hash && $0.installationID == device.installationID }) else { return }
            guard let error = report.error else {
                // Also when another server is being asked meanwhile.
                device.state = .done(.notified(by: server))
                return
            }
            guard case .asking(server, _) = device.state else { return }
            switch error {
            case .wrongToken, .notRegistered:
                let id = DeviceID(registrant: device.registrant, installationID: device.installationID)
                if let token = request.devices[id] { refused.append((device.registrant, device.installationID, server.key, token)) }
                // With a token from a query the same server may take it; other servers' tokens are probably as old.
                if device.wasQueried { device.tried.append(server.key) } else { device.mustQuery = true }
                device.state = .ready
            case .internalError where !device.askedAgain.contains(server.key):
                device.askedAgain.append(server.key)
                device.state = .askingAgain(server, at: StoredTime(now + Self.askAgainDelay))
            case .internalError, .unknown:
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
