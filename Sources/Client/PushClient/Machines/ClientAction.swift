import StatusProtocol
import Core
import Waku
import WakuCrypto

/// What a driver is to do, after the changes that came with it were kept.
enum ClientAction: Hashable, Sendable {
    case register(server: PublicKey, dialect: PushServer.Dialect?, requestID: [UInt8], sealed: [UInt8])
    case query(QueryTable.Ticket, registrant: PublicKey, dialects: Set<PushServer.Dialect>)
    case request(NotificationMachine.Ticket, server: PublicKey, PushNotificationRequest)
    case advertise(ContactCodeAdvertisement)
    /// Listen to these registrants' contact code topics.
    case watch([PublicKey])
    /// Look the latest advertisements of these up in the relay's store.
    case lookUp([PublicKey])
    case report(PushClientEvent)
    case finished(messageID: [UInt8])
}

typealias ClientOutput = MachineOutput<ClientRecord, ClientAction>
