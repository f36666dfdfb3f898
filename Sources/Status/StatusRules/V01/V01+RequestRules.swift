package import Core
package import StatusProtocol

extension V01 {
    /// Which devices a request notifies, and how it is acknowledged, `V01.md` section 5.
    package enum RequestRules {
        /// Devices that one request may concern. Those beyond are not notified, and the request fails.
        package static let deviceLimit = 20_000

        /// Whether a request is carried out: it names records, and the message that it is about.
        package static func isComplete(_ request: Request) -> Bool {
            !request.requests.isEmpty && !request.messageID.isEmpty
        }

        /// - Parameters:
        ///   - request: A complete one.
        ///   - record: What an access token selects.
        ///   - delivery: What is known of a delivery.
        package static func decide(
            _ request: Request, record: (AccessToken) throws -> SelectedRecord?, delivery: (DeliveryID) throws -> DeliveryState?
        ) rethrows -> RequestDecision {
            var decision = RequestDecision()
            var known: Set<DeliveryID> = []
            var groups: [Group: [PlannedNotification]] = [:]
            var order: [Group] = []
            for entry in request.requests {
                guard let record = try record(entry.accessToken) else {
                    decision.hasBadToken = true
                    continue
                }
                let chat = V01.chat(entry.chatID)
                for device in record.preferences.devices where admits(chat, for: device) {
                    guard let platform = device.platform else { continue }
                    let id = DeliveryID(messageID: request.messageID, registrant: record.registrant, installationID: device.installationID)
                    guard !known.contains(id) else { continue }
                    guard known.count < deviceLimit else {
                        decision.isRefused = true
                        continue
                    }
                    known.insert(id)
                    switch try delivery(id) {
                    case .accepted: continue
                    case .waiting: decision.awaited.append(id)
                    case nil:
                        // Apple and Google would not take it: it must not hold up what is posted with it.
                        guard chat.count + request.message.count <= Request.contentByteLimit else {
                            decision.isRefused = true
                            continue
                        }
                        let group = Group(platform: platform, chat: chat)
                        if groups[group] == nil { order.append(group) }
                        groups[group, default: []].append(
                            PlannedNotification(id: id, registrant: record.registrant, device: device, platform: platform, chatID: chat))
                    }
                }
            }
            decision.started = order.flatMap { groups[$0] ?? [] }
            return decision
        }

        private struct Group: Hashable {
            let platform: Platform
            let chat: [UInt8]
        }

        /// Whether a device is notified of something in a chat. An `allowed_key_list` decides who learns the token, and nothing here.
        private static func admits(_ chat: [UInt8], for device: Device) -> Bool {
            guard let filters = device.filters, filters.isEnabled else { return false }
            return !filters.blockedChatList.contains { V01.chat($0) == chat }
        }
    }

    /// The record that an access token selects.
    package struct SelectedRecord: Hashable, Sendable {
        package let registrant: KeyHash
        package let preferences: Preferences

        package init(registrant: KeyHash, preferences: Preferences) {
            self.registrant = registrant
            self.preferences = preferences
        }
    }

    /// A device to notify.
    package struct PlannedNotification: Hashable, Sendable {
        package let id: DeliveryID
        package let registrant: KeyHash
        package let device: Device
        package let platform: Platform
        /// What the request's chat_id stands for.
        package let chatID: [UInt8]
    }

    /// What a request comes to.
    package struct RequestDecision: Hashable, Sendable {
        /// New notifications. Those of one platform and chat stand together: they make one notification of gorush's.
        package var started: [PlannedNotification] = []
        /// Deliveries that another request started, and that gorush has not taken yet.
        package var awaited: [DeliveryID] = []
        /// An access token selects no record.
        package var hasBadToken = false
        /// Something is not accepted: it would fail, or it is too much for one request.
        package var isRefused = false

        package init() {}

        /// What the request is acknowledged; nil is success.
        ///
        /// - Parameter areAllTaken: Whether gorush took all that was started or awaited.
        package static func error(hasBadToken: Bool, areAllTaken: Bool) -> Acknowledgement.ErrorType? {
            if hasBadToken { return .badToken }
            return areAllTaken ? nil : .internalError
        }
    }
}
