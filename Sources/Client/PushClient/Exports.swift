// The client's interface names types of these modules: keys, relays, device tokens, kinds of messages. One import suffices for an application.
@_exported public import Core
@_exported public import StatusProtocol
@_exported public import Waku
@_exported public import WakuCrypto
