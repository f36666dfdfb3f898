// The one module that a protocol of another package imports: `NodeAPI`, the modules whose types it names, and the program that runs the protocol.
@_exported public import Core
@_exported public import Delivery
@_exported public import NodeAPI
@_exported public import NodeMetrics
@_exported public import RateLimits
@_exported public import Storage
@_exported public import Waku
@_exported public import WakuCrypto
@_exported public import WakuPushCommands
