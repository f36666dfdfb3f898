package import Core
package import StatusProtocol

extension V01 {
    /// Decides which devices a request notifies, and its acknowledgement, `V01.md` section 5.
    package enum RequestRules {
        /// Whether a request has entries and a message id. Others are dropped.
        package static func isComplete(_ request: Request) -> Bool {
            !request.requests.isEmpty && !request.messageID.isEmpty
        }

        /// - Parameters:
        ///   - request: A complete request: see ``isComplete(_:)``.
        ///   - room: What the request's entries that were decided before have left.
        ///   - record: The record selected by an access token; nil if there is none.
        ///   - delivery: The state of a delivery; nil if there is none yet.
        package static func decide(
            _ request: Request, room: RecordRoom = RecordRoom(), record: (AccessToken) throws -> SelectedRecord?,
            delivery: (DeliveryID) throws -> DeliveryState?
        ) rethrows -> RequestDecision {
            var decision = RequestDecision(room: room)
            var known: Set<DeliveryID> = []
            var blocked: [DeliveryID: Set<[UInt8]>] = [:]
            var groups: [Group: [PlannedNotification]] = [:]
            var order: [Group] = []
            for entry in request.requests {
                guard let record = try record(entry.accessToken) else {
                    decision.hasBadToken = true
                    continue
                }
                let chat = V01.chat(entry.chatID)
                // Apple and Google would not accept it, and it must not delay notifications in the same post. Checked before the filters, so that
                // the acknowledgement does not tell a blocked sender.
                guard chat.count + request.message.count <= Request.contentByteLimit else {
                    decision.isRefused = true
                    continue
                }
                guard decision.room.admits(record) else {
                    decision.isRefused = true
                    continue
                }
                for device in record.preferences.devices {
                    guard let platform = device.platform, let filters = device.filters, filters.isEnabled else { continue }
                    let id = DeliveryID(messageID: request.messageID, registrant: record.registrant, installationID: device.installationID)
                    guard !known.contains(id) else { continue }
                    // Lists may be long, and a request may have many entries for the same record.
                    if blocked[id] == nil { blocked[id] = Set(filters.blockedChatList.map(V01.chat)) }
                    // An empty entry blocks nothing. `allowed_key_list` has no effect here: it only restricts access to the token.
                    guard chat.isEmpty || blocked[id]?.contains(chat) != true else { continue }
                    known.insert(id)
                    switch try delivery(id) {
                    case .accepted: continue
                    case .waiting: decision.awaited.append(id)
                    case nil:
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
    }

    /// Limits the devices of one request. A record that does not fit is not notified, and the request fails.
    ///
    /// All devices of a record count, also those that are filtered or not enabled: the acknowledgement must not tell how many these are.
    package struct RecordRoom: Hashable, Sendable {
        package static let deviceLimit = 20_000

        private let limit: Int
        private var deviceCount = 0
        private var registrants: Set<KeyHash> = []

        package init(limit: Int = deviceLimit) {
            self.limit = limit
        }

        /// Counts a record once, however many entries select it.
        mutating func admits(_ record: SelectedRecord) -> Bool {
            if registrants.contains(record.registrant) { return true }
            guard deviceCount + record.preferences.devices.count <= limit else { return false }
            deviceCount += record.preferences.devices.count
            registrants.insert(record.registrant)
            return true
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
        /// The chat's hash, decoded from the request's chat_id.
        package let chatID: [UInt8]
    }

    /// The result of a request.
    package struct RequestDecision: Hashable, Sendable {
        /// New notifications, grouped by platform and chat: each group becomes one gorush notification.
        package var started: [PlannedNotification] = []
        /// Deliveries started by another request that gorush has not accepted yet.
        package var awaited: [DeliveryID] = []
        /// At least one access token selects no record.
        package var hasBadToken = false
        /// At least one notification was refused: too large for the push services, or over ``V01/RecordRoom/deviceLimit``.
        package var isRefused = false
        /// What is left for the request's next entries.
        package var room = RecordRoom()

        /// The error in the acknowledgement; nil is success.
        ///
        /// - Parameter areAllTaken: Whether gorush accepted all started and awaited deliveries.
        package static func error(hasBadToken: Bool, areAllTaken: Bool) -> Acknowledgement.ErrorType? {
            if hasBadToken { return .badToken }
            return areAllTaken ? nil : .internalError
        }
    }
}
