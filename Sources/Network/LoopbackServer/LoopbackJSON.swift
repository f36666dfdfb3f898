import Waku

/// `GET /health`: the loopback node is always ready.
struct HealthJSON: Encodable {
    let nodeHealth = "READY"
    let connectionStatus = "Connected"
    let protocolsHealth = [["Relay": "READY"], ["Store": "READY"], ["Lightpush": "READY"]]
}

/// `POST /lightpush/v3/message`
struct PushJSON: Decodable {
    let pubsubTopic: String?
    let message: MessageJSON
}

/// `GET /store/v3/messages`
struct StoreJSON: Encodable {
    struct Entry: Encodable {
        let messageHash: String
        let message: MessageJSON?
        let pubsubTopic: String?
    }

    var requestId = "1"
    var statusCode = 200
    var statusDesc = "OK"
    var messages: [Entry] = []
    var paginationCursor: String?

    init(statusCode: Int, statusDesc: String) {
        self.statusCode = statusCode
        self.statusDesc = statusDesc
    }

    init(_ messages: [ReceivedMessage], includesData: Bool, cursor: MessageHash?) {
        self.messages = messages.map { received in
            Entry(
                messageHash: "0x" + received.hash.hex, message: includesData ? MessageJSON(received.message) : nil,
                pubsubTopic: includesData ? received.pubsubTopic.rawValue : nil)
        }
        paginationCursor = cursor.map { "0x" + $0.hex }
    }
}
