import PushClient
import Core
import StatusProtocol
import WakuCrypto

/// Checks a ready daemon by sending requests as clients do.
struct LiveCheck: Sendable {
    private static let attempts = 20
    /// How long to wait for an answer that must not come.
    private static let silence = Duration.milliseconds(200)

    let server: PublicKey
    let ledger: LedgerBox

    /// Queries a registrant: each acknowledged registration, or a newer one, must be found, and no ended one.
    func find(_ phone: any CrashClient) async throws {
        let key = KeyHash(of: phone.identity.publicKey)
        let before = ledger.copy
        let own = before.devices.indices.filter { before.devices[$0].key.keyHash == key }
        guard !own.isEmpty else { return }
        let isKnown = own.contains { before.devices[$0].isRegistered }
        var found: [ReachableDevice] = []
        for attempt in 1...Self.attempts {
            do throws(PushClientError) {
                found = try await phone.client.query(
                    phone.identity.publicKey, at: server, timeout: isKnown ? .seconds(3) : Self.silence)
                break
            } catch {
                if error.code != .noAnswer { throw Failed("the client failed: \(error.message)") }
                // Possibly there are no registrations left.
                if !ledger.withLock({ ledger in own.contains { mustBeFound(before.devices[$0], now: ledger.devices[$0]) } }) { break }
                if attempt == Self.attempts { throw Failed("a query for an acknowledged registration has no answer") }
            }
        }
        ledger.withLock { ledger in
            ledger.figures.add(isKnown ? .queries : .silences)
            for index in own {
                let (device, now) = (before.devices[index], ledger.devices[index])
                let row = found.first { $0.installationID == device.key.installationID }
                let name = "\(device.key.installationID) in a query"
                if let row {
                    if row.version < device.floor {
                        ledger.breaks("\(name): version \(row.version), though \(device.floor) was acknowledged")
                    }
                    if now.attempts[row.version]?.accessToken != row.accessToken { ledger.breaks("\(name): not what was registered") }
                } else if mustBeFound(device, now: now) {
                    ledger.breaks("\(name): not found, though version \(device.floor) was acknowledged")
                }
            }
        }
    }

    private func mustBeFound(_ device: Ledger.Device, now: Ledger.Device) -> Bool {
        device.isRegistered && !now.mayHaveEnded(since: device.floor)
    }

    /// A registration or unregistration of an old version must be refused: acknowledged versions are not forgotten.
    func refusal(of index: Int, _ phone: any CrashClient) async throws {
        let device = ledger.withLock { $0.devices[index] }
        let old = DeviceProfile(platform: .apn, deviceToken: DeviceToken("old"), apnTopic: "im.status.ethereum")
        for _ in 1...Self.attempts {
            do throws(PushClientError) {
                let error = try await phone.client.register(
                    old, as: device.key.installationID, accessToken: AccessToken("9f1b0c6e-52d3-4b7a-8a57-0d2c6d1e4f3a"),
                    version: device.floor, with: server, timeout: .seconds(3))
                ledger.withLock { ledger in
                    ledger.figures.add(.refusals)
                    if error != .versionMismatch {
                        ledger.breaks("\(device.key.installationID): version \(device.floor) is taken again: \(String(describing: error))")
                    }
                }
                return
            } catch {
                if error.code != .noAnswer { throw Failed("the client failed: \(error.message)") }
            }
        }
        throw Failed("an old registration has no answer")
    }
}
